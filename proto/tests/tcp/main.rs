//! Two TCP endpoints and what may happen between them.

mod complete;
mod pipe;
mod theory;
