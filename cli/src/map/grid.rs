//! The cells of a map: their settings, and the share of the bound in each.

use crate::plot::heat::{Heat, HeatAxis, HeatMap};
use crate::row::short;
use crate::{stats, table, text};
use airmend_sim::{Experiment, Outcome};
use serde_json::{Map, Value, json};

/// The sweep whose values stand side by side.
const COLUMNS: &str = "agent";

/// The swept settings of a map, and its cells.
pub(crate) struct Grid {
    x: Axis,
    y: Axis,
    rows: Option<Axis>,
    columns: Option<Axis>,
    /// The share of the bound by column, row, y and x; `None` without a bound.
    cells: Vec<Option<f64>>,
}

/// One swept setting.
#[derive(Clone, Debug)]
struct Axis {
    name: String,
    /// Its place in [`Experiment::swept`].
    index: usize,
    labels: Vec<String>,
}

/// The place of a cell: column, row, y and x.
type Place = [usize; 4];

impl Grid {
    /// The map of an experiment without results. `chosen` names the settings from left to right,
    /// from bottom to top, and from row to row; what is not named is taken in the order of the
    /// scenario. An error is one sentence.
    pub(crate) fn new(
        experiment: &Experiment,
        chosen: &[Option<String>; 3],
    ) -> Result<Self, String> {
        let mut axes = axes(experiment);
        let names: Vec<String> = axes.iter().map(|axis| axis.name.clone()).collect();
        let columns = axes.iter().position(|axis| axis.name == COLUMNS).map(|at| axes.remove(at));
        let mut taken = [None, None, None];
        for (place, name) in taken.iter_mut().zip(chosen) {
            let Some(name) = name else { continue };
            let Some(at) = axes.iter().position(|axis| axis.name == *name) else {
                let known = names.join(", ");
                return Err(format!("{name} is no sweep of the scenario; it sweeps {known}"));
            };
            *place = Some(axes.remove(at));
        }
        let mut varied = axes.into_iter().filter(|axis| axis.labels.len() > 1);
        let [x, y, rows] = taken.map(|axis| axis.or_else(|| varied.next()));
        if let Some(Axis { name, labels, .. }) = varied.next() {
            let value = labels.first().map_or("", String::as_str);
            return Err(format!(
                "the scenario sweeps {name} too, which is one setting too many: give it one value, \
                 such as --set 'sweep.{name}.values=[{value:?}]'"
            ));
        }
        let (Some(x), Some(y)) = (x, y) else {
            return Err("a map needs two swept settings beside the agent: name them by --x and \
                        --y, such as --x links.air.delay=1ms,10ms"
                .to_owned());
        };
        let mut grid = Self { x, y, rows, columns, cells: Vec::new() };
        grid.cells = vec![None; grid.sizes().iter().product()];
        Ok(grid)
    }

    /// Takes the results of all runs, in their order.
    pub(crate) fn fill(&mut self, experiment: &Experiment, outcomes: &[Outcome]) {
        let of_points = outcomes.chunks(experiment.runs as usize);
        for (point, outcomes) in experiment.points.iter().zip(of_points) {
            let goodputs: Vec<f64> = outcomes.iter().map(|outcome| outcome.goodput_bps).collect();
            let bound = point.plan.setting().bound_bps.filter(|bound| *bound > 0.0);
            let share = stats::mean(&goodputs).zip(bound).map(|(mean, bound)| mean / bound);
            let index = |axis: Option<&Axis>| {
                axis.and_then(|axis| {
                    let label = point.values.get(axis.index)?;
                    axis.labels.iter().position(|other| other == label)
                })
                .unwrap_or(0)
            };
            let place = [self.columns.as_ref(), self.rows.as_ref(), Some(&self.y), Some(&self.x)];
            let at = self.at(place.map(index));
            self.cells[at] = share;
        }
    }

    /// Each cell with its settings.
    pub(crate) fn cells(&self) -> impl Iterator<Item = Value> {
        self.places().map(|place| {
            let mut cell = Map::new();
            for (axis, at) in self.axes().iter().zip(place) {
                if let Some(axis) = axis {
                    cell.insert(axis.name.clone(), json!(axis.labels[at]));
                }
            }
            cell.insert("of_bound".to_owned(), json!(self.cells[self.at(place)].map(short)));
            Value::Object(cell)
        })
    }

    /// One table for each map.
    pub(crate) fn words(&self, title: &str) -> String {
        let mut words = title.to_owned();
        let [columns, rows, ..] = self.sizes();
        for (column, row) in (0..columns).flat_map(|c| (0..rows).map(move |r| (c, r))) {
            let corner = format!("{} \\ {}", self.y.name, self.x.name);
            let header: Vec<_> = [corner].into_iter().chain(self.x.labels.clone()).collect();
            let line = |y: usize| {
                let share = |x: usize| self.cells[self.at([column, row, y, x])];
                let shares = (0..self.x.labels.len()).map(share);
                let shares = shares.map(|s| s.map_or("–".to_owned(), text::percent));
                [self.y.labels[y].clone()].into_iter().chain(shares).collect()
            };
            let lines: Vec<Vec<String>> = (0..self.y.labels.len()).rev().map(line).collect();
            let grid = table::render(&header, &lines, 1);
            words.push_str(&format!("\n\n{}\n{grid}", self.name_of(column, row)));
        }
        words.push('\n');
        words
    }

    /// The picture.
    pub(crate) fn picture(&self, title: &str) -> Heat {
        let axis = |axis: &Axis| HeatAxis {
            title: axis.name.replace('_', " "),
            labels: axis.labels.clone(),
        };
        let map = |column: usize, row: usize| HeatMap {
            title: self.name_of(column, row),
            shares: (0..self.y.labels.len())
                .map(|y| (0..self.x.labels.len()).map(|x| [column, row, y, x]).collect())
                .map(|places: Vec<Place>| {
                    places.into_iter().map(|place| self.cells[self.at(place)]).collect()
                })
                .collect(),
        };
        let [columns, rows, ..] = self.sizes();
        Heat {
            title: title.to_owned(),
            subtitle: "goodput as a share of what the air hop can carry beside its losses".into(),
            x: axis(&self.x),
            y: axis(&self.y),
            maps: (0..rows).map(|row| (0..columns).map(|c| map(c, row)).collect()).collect(),
        }
    }

    /// The name of a map: its agent, and the setting of its row.
    fn name_of(&self, column: usize, row: usize) -> String {
        let column = self.columns.as_ref().map(|axis| axis.labels[column].clone());
        let name = |axis: &Axis| format!("{} {}", axis.name.replace('_', " "), axis.labels[row]);
        let row = self.rows.as_ref().map(name);
        column.into_iter().chain(row).collect::<Vec<_>>().join(", ")
    }

    fn axes(&self) -> [Option<&Axis>; 4] {
        [self.columns.as_ref(), self.rows.as_ref(), Some(&self.y), Some(&self.x)]
    }

    fn sizes(&self) -> Place {
        self.axes().map(|axis| axis.map_or(1, |axis| axis.labels.len()))
    }

    fn at(&self, place: Place) -> usize {
        self.sizes().iter().zip(place).fold(0, |at, (size, index)| at * size + index)
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        let [columns, rows, ys, xs] = self.sizes();
        (0..columns * rows * ys * xs)
            .map(move |at| [at / (rows * ys * xs), at / (ys * xs) % rows, at / xs % ys, at % xs])
    }
}

/// The swept settings of an experiment, with their values in their order.
fn axes(experiment: &Experiment) -> Vec<Axis> {
    let axis = |(index, name): (usize, &String)| {
        let mut labels: Vec<String> = Vec::new();
        for value in experiment.points.iter().filter_map(|point| point.values.get(index)) {
            if !labels.contains(value) {
                labels.push(value.clone());
            }
        }
        Axis { name: name.clone(), index, labels }
    };
    experiment.swept.iter().enumerate().map(axis).collect()
}
