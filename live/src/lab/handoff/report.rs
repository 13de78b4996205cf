//! What a run with several base stations leaves.

use crate::lab::outcome::Handoffs;
use crate::lab::record::Recorder;

/// What was noted at the stations.
pub(crate) struct CellsReport {
    pub(crate) recorders: Vec<Recorder>,
    pub(crate) handoffs: Handoffs,
}
