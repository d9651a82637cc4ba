//! Piers: epochs in order, read as one log; what does not fit is refused; a roll survives crashes.

#![allow(dead_code)]

mod crash;
mod grid;
mod needed;
mod open;
mod publish;
mod read;
mod retain;
mod roll;
mod support;
mod transact;
