//! `airmend top`: a live view of a running gateway.

mod model;
mod view;

use crate::process::{BadUsage, stop_flag};
use crate::status::{GatewaySelection, client};
use crate::values::interval;
use anyhow::Result;
use clap::Args;
use model::Model;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// `airmend top`.
#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    which: GatewaySelection,
    /// How often to look, from 100ms.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
}

/// A signal is noticed after so long at the latest.
const SIGNAL_LATENCY: Duration = Duration::from_millis(200);

/// Shows the gateway until `q`, or until a signal ends it.
pub(crate) fn top(args: &TopArgs) -> Result<()> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let sentence = "top needs a terminal; `airmend status --json` prints the same figures";
        return Err(BadUsage(sentence.into()).into());
    }
    let socket = args.which.socket()?;
    let mut model = Model::default();
    // Who mistyped something should read why, not watch an empty screen.
    model.update(client::ask(&socket)?);
    let stop = stop_flag()?;
    // Also a panic leaves the terminal as it was.
    let mut terminal = ratatui::try_init()?;
    let result = run(&mut terminal, &mut model, &socket, args.interval, &stop);
    ratatui::restore();
    Ok(result?)
}

fn run(
    terminal: &mut DefaultTerminal,
    model: &mut Model,
    socket: &Path,
    interval: Duration,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut next = Instant::now() + interval;
    while !stop.load(Ordering::Relaxed) {
        terminal.draw(|frame| view::draw(frame, model))?;
        let wait = next.saturating_duration_since(Instant::now()).min(SIGNAL_LATENCY);
        // A terminal whose size changed is redrawn at the next turn.
        if event::poll(wait)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
            && press(model, key) == Then::Quit
        {
            break;
        }
        if Instant::now() >= next {
            next = Instant::now() + interval;
            if !model.is_paused() {
                match client::ask(socket) {
                    Ok(status) => model.update(status),
                    Err(why) => model.lost(why.to_string()),
                }
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    Quit,
}

fn press(model: &mut Model, key: KeyEvent) -> Then {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if is_control => return Then::Quit,
        KeyCode::Char('q') | KeyCode::Esc => return Then::Quit,
        KeyCode::Char('s') => model.sort_by_next(),
        KeyCode::Char('p') => model.pause_or_go_on(),
        _ => {}
    }
    Then::GoOn
}

#[cfg(test)]
mod tests;
