//! The layout `slots`: the golden files byte for byte, what its header decides, what a mark adds.

mod damage;
mod golden;
mod header;
mod marks;
mod model;
mod support;
