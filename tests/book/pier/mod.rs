//! Piers: epochs in order, read as one log, refusals, and rolls that survive crashes.

mod crash;
mod grid;
mod mend;
mod needed;
mod open;
mod publish;
mod read;
mod retain;
mod roll;
mod support;
mod transact;
