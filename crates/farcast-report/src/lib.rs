//! What people look at: pages and tables.
#![forbid(unsafe_code)]
