//! The index of the event store: results and cost of queries, and recovery from damage and crashes.

mod damage;
mod filters;
mod forged;
mod queries;
mod world;
