//! Events as Arrow record batches, in both directions.

pub(super) mod batches;
pub(super) mod columns;
pub(super) mod growing;
pub(super) mod parsed;
pub(super) mod stage_arrow;
