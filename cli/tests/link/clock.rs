//! The system's clock is set by hours while a link is up, and its dialer starts again after that.

use crate::kit::{Result, until};
use crate::stream::lasting;
use crate::world::{INNER, RIGHT, World};
use crate::{BYTES, count, ended};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime, clock_settime};

/// In seconds.
const HOURS: i64 = 5 * 3_600;

/// `CLOCK_REALTIME`, of this guest.
fn set(by_seconds: i64) -> Result {
    let now = clock_gettime(ClockId::CLOCK_REALTIME)?;
    let then = TimeSpec::new(now.tv_sec() + by_seconds, now.tv_nsec());
    Ok(clock_settime(ClockId::CLOCK_REALTIME, then)?)
}

/// Who has set the clock back sets it right, also where the test fails.
struct Right;

impl Drop for Right {
    fn drop(&mut self) {
        set(HOURS).ok();
    }
}

pub(crate) fn set_while_up() -> Result {
    let world = World::new()?;
    let dial = format!("{RIGHT}:4433");
    let (listener, dialer) = (world.listen("0.0.0.0:4433")?, world.dial(&dial)?);
    let (mut dialer, mut right) = (Some(dialer), None);
    lasting(world.hosts(), INNER[1].parse()?, |received| {
        let goes_on = |bytes: u64| {
            let before = received();
            until("more of the stream", || (received() > before + bytes).then_some(()))
        };
        goes_on(BYTES / 4)?;
        for hours in [HOURS, -HOURS] {
            set(hours)?;
            goes_on(BYTES / 4)?;
        }
        // The peer remembers a later time.
        set(-HOURS)?;
        right = Some(Right);
        let last = dialer.take().ok_or("a dialer")?;
        let figures = ended(last)?;
        assert_eq!(count(&figures, "sessions"), 1, "the clock is none of a session's");
        dialer = Some(world.dial(&dial)?);
        goes_on(BYTES / 4)
    })?;
    ended(dialer.ok_or("a dialer")?)?;
    let figures = ended(listener)?;
    assert_eq!(count(&figures, "sessions"), 2, "{figures}");
    assert!(count(&figures, "challenged") > 0, "{figures}");
    Ok(())
}
