//! `airmend top`: a live view of a running gateway or link.

mod chart;
mod link;
mod model;
mod view;

use crate::process::{BadUsage, stop_flag};
use crate::status::GatewaySelection;
use crate::status::client::{self, Answer};
use crate::values::interval;
use anyhow::Result;
use clap::Args;
use model::Model;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Frame};
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

/// What is shown: one of the two kinds of daemons.
enum Screen {
    Gateway(Box<Model>),
    Link(Box<link::Model>),
}

impl Screen {
    fn new(answer: Answer) -> Self {
        match answer {
            Answer::Gateway(status) => {
                let mut model = Model::default();
                model.update(*status);
                Self::Gateway(Box::new(model))
            }
            Answer::Link(status) => Self::Link(Box::new(link::Model::new(*status))),
        }
    }

    /// Takes a new status; another kind of daemon may have taken the place.
    fn update(&mut self, answer: Answer) {
        match (&mut *self, answer) {
            (Self::Gateway(model), Answer::Gateway(status)) => model.update(*status),
            (Self::Link(model), Answer::Link(status)) => model.update(*status),
            (_, other) => *self = Self::new(other),
        }
    }

    /// There was no answer: what was seen last stays.
    fn lost(&mut self, why: String) {
        match self {
            Self::Gateway(model) => model.lost(why),
            Self::Link(model) => model.lost(why),
        }
    }

    fn is_paused(&self) -> bool {
        match self {
            Self::Gateway(model) => model.is_paused(),
            Self::Link(model) => model.is_paused(),
        }
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        match self {
            Self::Gateway(model) => view::draw(frame, model),
            Self::Link(model) => link::draw(frame, model),
        }
    }

    fn sort_by_next(&mut self) {
        match self {
            Self::Gateway(model) => model.sort_by_next(),
            Self::Link(model) => model.sort_by_next(),
        }
    }

    fn pause_or_go_on(&mut self) {
        match self {
            Self::Gateway(model) => model.pause_or_go_on(),
            Self::Link(model) => model.pause_or_go_on(),
        }
    }
}

/// Shows the gateway or link until `q`, or until a signal ends it.
pub(crate) fn top(args: &TopArgs) -> Result<()> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        let sentence = "top needs a terminal; `airmend status --json` prints the same figures";
        return Err(BadUsage(sentence.into()).into());
    }
    let socket = args.which.socket()?;
    // Who mistyped something should read why, not watch an empty screen.
    let mut screen = Screen::new(client::ask_any(&socket)?);
    let stop = stop_flag()?;
    // Also a panic leaves the terminal as it was.
    let mut terminal = ratatui::try_init()?;
    let result = run(&mut terminal, &mut screen, &socket, args.interval, &stop);
    ratatui::restore();
    Ok(result?)
}

fn run(
    terminal: &mut DefaultTerminal,
    screen: &mut Screen,
    socket: &Path,
    interval: Duration,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut next = Instant::now() + interval;
    while !stop.load(Ordering::Relaxed) {
        terminal.draw(|frame| screen.draw(frame))?;
        let wait = next.saturating_duration_since(Instant::now()).min(SIGNAL_LATENCY);
        // A terminal whose size changed is redrawn at the next turn.
        if event::poll(wait)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
            && press(screen, key) == Then::Quit
        {
            break;
        }
        if Instant::now() >= next {
            next = Instant::now() + interval;
            if !screen.is_paused() {
                match client::ask_any(socket) {
                    Ok(answer) => screen.update(answer),
                    Err(why) => screen.lost(why.to_string()),
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

fn press(screen: &mut Screen, key: KeyEvent) -> Then {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if is_control => return Then::Quit,
        KeyCode::Char('q') | KeyCode::Esc => return Then::Quit,
        KeyCode::Char('s') => screen.sort_by_next(),
        KeyCode::Char('p') => screen.pause_or_go_on(),
        _ => {}
    }
    Then::GoOn
}

#[cfg(test)]
mod tests;
