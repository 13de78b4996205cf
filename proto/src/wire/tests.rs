//! Round trips, oracles and hostile bytes for the whole wire layer.
