//! The command `airmend`.

fn main() {}
