//! Tables for people.

use comfy_table::{Cell, CellAlignment, Table, presets};

/// Lays out rows below their header; every column but the first `left` is aligned to the right.
pub(crate) fn render(header: &[String], rows: &[Vec<String>], left: usize) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let cells = |row: &[String]| -> Vec<Cell> {
        let aligned = |(column, text): (usize, &String)| {
            let right = column >= left;
            let alignment = if right { CellAlignment::Right } else { CellAlignment::Left };
            Cell::new(text).set_alignment(alignment)
        };
        row.iter().enumerate().map(aligned).collect()
    };
    table.set_header(cells(header));
    table.add_rows(rows.iter().map(|row| cells(row)));
    table.trim_fmt()
}
