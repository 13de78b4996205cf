//! What a gateway says that it gains while it mends, beside the same transfer without it.

use crate::daemon::{Daemon, repairs};
use crate::kit::{Result, has_steady_clock};
use crate::transfer::{Plan, transfer};
use crate::world::{Shape, World};

const BYTES: u64 = 3_000_000;
/// The estimate is TCP's model: right within this factor of what switching the agent off shows.
const WITHIN: f64 = 2.0;

pub(crate) fn gain_told() -> Result {
    for loss in [0.01, 0.03] {
        let figures = |flags: &[&str]| -> Result<_> {
            let world = World::new(Shape { loss, ..Shape::default() })?;
            let daemon = Daemon::start(&world.base, "air0", flags)?;
            let plan = Plan { congestion: Some("cubic"), ..Plan::equal(1, BYTES) };
            transfer(&world, &plan, |_| Ok(()))?;
            daemon.end()
        };
        let (mended, observed) = (figures(&[])?, figures(&["--observe"])?);
        let (gain, without) = (&mended["gain"], &observed["observation"]["goodput_bps"]);
        let figure = |name: &str| gain[name].as_f64().unwrap_or(f64::NAN);
        let [goodput, told] = ["goodput_bps", "without_bps"].map(figure);
        let without = without.as_f64().ok_or("no goodput")?;
        println!("{loss}: {goodput:.0} b/s mended, without {told:.0} told, {without:.0} seen");
        assert_eq!(gain["flows_seen"], 1);
        assert!(repairs(&mended) > 0 && 0.0 < told && told < goodput, "{gain}");
        let spent = mended["bytes"]["repairs"].as_u64().ok_or("no bytes")?;
        assert!(spent > 0 && spent < BYTES / 5, "{spent} bytes of repairs");
        let ratio = told / without;
        assert!(!has_steady_clock() || (1.0 / WITHIN..WITHIN).contains(&ratio), "{ratio:.2}");
    }
    Ok(())
}
