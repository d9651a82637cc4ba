//! The bytes of the event store: golden files, properties, damage, JSON.

mod damage;
mod files;
mod golden;
mod json;
mod properties;
