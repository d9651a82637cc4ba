//! The layout `slots`: the golden files byte for byte, what its header decides, what a mark adds.

#![allow(dead_code)]

mod damage;
mod golden;
mod header;
mod marks;
mod model;
mod support;
