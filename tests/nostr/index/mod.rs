//! The index of the event store: what it finds, what it costs, and what damage and death leave.

mod damage;
mod filters;
mod forged;
mod queries;
mod world;
