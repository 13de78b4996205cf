//! The gateway's programs at the air interface, run by the kernel on packets of a test's choice
//! (BPF_PROG_TEST_RUN). Only root may.

use airmend_live::bpf::{
    FlowKeyBytes, FlowValue, PROGRAMS, RESTORES_UNTIL, RestorationKey, RestorationValue, flow_key,
    restoration_entry,
};
use airmend_proto::Restoration;
use airmend_proto::wire::flow::FlowKey;
use aya::maps::{Array, HashMap, MapData, RingBuf};
use aya::programs::{SchedClassifier, TestRun, TestRunOptions};
use aya::{Ebpf, EbpfLoader};
use std::fmt::Display;

const INGRESS: &str = "airmend_ingress";
const EGRESS: &str = "airmend_egress";
/// The index of the device to which packets are redirected: the loopback interface is always there.
const REINJECTION: u32 = 1;

/// The state of a flow with a SYN since its last ACK.
const SYN_SEEN: u64 = 4;

/// What the program decided about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The packet passes at once; whether the daemon is told.
    Passes {
        /// Whether there is a report.
        reported: bool,
    },
    /// The packet waits for the daemon.
    Diverted,
    /// The packet goes to the reinjection device.
    Redirected,
}

/// The programs, loaded.
pub(crate) struct Kernel {
    programs: Ebpf,
    flows: HashMap<MapData, FlowKeyBytes, FlowValue>,
    reports: RingBuf<MapData>,
    restorations: HashMap<MapData, RestorationKey, RestorationValue>,
    heartbeat: Array<MapData, u64>,
}

impl Kernel {
    /// Loads the programs with a heartbeat that never times out; an error says what is lacking.
    pub(crate) fn load() -> Result<Self, String> {
        let words = |error: &dyn Display| format!("the kernel does not run BPF programs: {error}");
        let mut programs = EbpfLoader::new()
            .override_global("MARK", &0x6d65_6e64u32, true)
            .override_global("REINJECTION", &REINJECTION, true)
            .override_global("HEARTBEAT_TIMEOUT_NS", &(u64::MAX / 4), true)
            .load(PROGRAMS)
            .map_err(|error| words(&error))?;
        let mut map = |name| programs.take_map(name).expect("the programs have this map");
        let flows = map("flows").try_into().expect("`FlowValue` is as long as the map's");
        let reports = map("reports").try_into().expect("it is a ring buffer");
        let restorations = map("restorations").try_into().expect("its types are as long");
        let heartbeat = map("heartbeat").try_into().expect("it is an array of times");
        let mut kernel = Self { programs, flows, reports, restorations, heartbeat };
        for name in [INGRESS, EGRESS] {
            kernel.program(name).load().map_err(|error| words(&error))?;
        }
        kernel.test(INGRESS, &[0; 64], &mut [0; 64])?;
        Ok(kernel)
    }

    fn program(&mut self, name: &str) -> &mut SchedClassifier {
        let program = self.programs.program_mut(name).expect("it is one of the programs");
        program.try_into().expect("it is a classifier")
    }

    /// Runs a program on a frame; what it makes of the frame is written to `out`.
    fn test(&mut self, name: &str, frame: &[u8], out: &mut [u8]) -> Result<u32, String> {
        let options = TestRunOptions {
            data_in: Some(frame),
            data_out: Some(out),
            ..TestRunOptions::default()
        };
        let result = self.program(name).test_run(options);
        result.map(|result| result.return_value).map_err(|error| error.to_string())
    }

    /// Notes a timestamp to be restored until this time, in nanoseconds of `CLOCK_MONOTONIC`.
    pub(crate) fn restore(&mut self, restoration: &Restoration, until: u64) {
        let (key, value) = restoration_entry(restoration, until);
        self.restorations.insert(key, value, 0).expect("the map takes any");
        self.heartbeat.set(RESTORES_UNTIL, until, 0).expect("the map has this place");
    }

    /// What leaves towards a mobile in the place of this frame.
    pub(crate) fn leaves(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut out = vec![0; frame.len()];
        let code = self.test(EGRESS, frame, &mut out).expect("the kernel runs the program");
        assert_eq!(code, u32::MAX, "every packet passes");
        out
    }

    /// Notes a flow, as a copy of its data does; what was known of it is forgotten.
    pub(crate) fn note(&mut self, key: &FlowKey) {
        self.flows.insert(flow_key(key), FlowValue::default(), 0).expect("the map takes any flow");
    }

    /// Notes a SYN from the fixed host, as its copy does: the highest ACK stays.
    pub(crate) fn note_syn(&mut self, key: &FlowKey) {
        let key = flow_key(key);
        let [acked, state, ..] = self.flows.get(&key, 0).unwrap_or_default();
        self.flows.insert(key, [acked, state | SYN_SEEN, 0, 0, 0], 0).expect("the map takes any");
    }

    /// The highest ACK of a flow that has passed; `None` if none is known, or the flow is not.
    pub(crate) fn acked(&self, key: &FlowKey) -> Option<u64> {
        let [acked, state, ..] = self.flows.get(&flow_key(key), 0).ok()?;
        (state & 1 == 1).then_some(acked)
    }

    /// Runs the program on a frame from a mobile.
    pub(crate) fn run(&mut self, frame: &[u8]) -> Verdict {
        let mut out = vec![0; frame.len()];
        let code = self.test(INGRESS, frame, &mut out).expect("the kernel runs the program");
        let mut reports = 0;
        let mut diverted = false;
        while let Some(report) = self.reports.next() {
            reports += 1;
            diverted |= report[18..20] != [0, 0];
        }
        match (code, reports, diverted) {
            (u32::MAX, 0 | 1, false) => Verdict::Passes { reported: reports == 1 },
            (2, 1, true) => Verdict::Diverted,
            (7, 0, false) => Verdict::Redirected,
            other => panic!("no verdict has this code and these reports: {other:?}"),
        }
    }
}
