//! A heat map: rows, columns, and the darker the more.

use super::colour::{Colour, N_STEPS, step_of};
use super::drawing::{Anchor, Drawing, Stroke, Words};
use super::text::{cut_to, width_of};

/// A heat map.
#[derive(Debug, Clone)]
pub struct HeatMap {
    /// Words above.
    pub title: String,
    /// What the rows are.
    pub row_title: String,
    /// What the columns are.
    pub column_title: String,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Cells, row by row; none where there is nothing to show.
    pub cells: Vec<Vec<Option<Cell>>>,
    /// What the lightest and the darkest step stand for.
    pub ends: (String, String),
    /// A line at the foot.
    pub note: String,
}

/// A cell.
#[derive(Debug, Clone)]
pub struct Cell {
    /// How dark it is, from 0 to 1.
    pub share: f64,
    /// What is written in it if there is room.
    pub shown: String,
    /// What it tells.
    pub tip: String,
}

const LABEL_SIZE: f64 = 11.0;

impl HeatMap {
    /// Draws it this wide, with as many columns as there is room for.
    pub fn draw(&self, width: f64) -> Drawing {
        let longest = |names: &[String], most: f64| {
            names.iter().map(|name| width_of(name, LABEL_SIZE)).fold(0.0, f64::max).min(most)
        };
        let left = longest(&self.rows, width * 0.3) + 12.0;
        let room = width - left - 6.0;
        let n_columns = self.columns.len().min((room / 15.0) as usize).max(1);
        let cell = (room / n_columns as f64).min(72.0);
        let row_height = if cell >= 40.0 { 28.0 } else { 20.0 };
        let columns = &self.columns[..n_columns.min(self.columns.len())];
        // Names of columns lie flat if they fit.
        let is_flat = columns.iter().all(|name| width_of(name, LABEL_SIZE) <= cell - 4.0);
        let head = 48.0 + if is_flat { 16.0 } else { longest(columns, 110.0) + 8.0 };
        let bottom = head + row_height * self.rows.len() as f64;
        let mut drawing = Drawing::new(width, bottom + 46.0);
        self.draw_titles(&mut drawing);
        let small = |anchor| Words::new(anchor, Colour::Muted).sized(LABEL_SIZE);
        for (ix, name) in columns.iter().enumerate() {
            let x = left + (ix as f64 + 0.5) * cell;
            if is_flat {
                drawing.text((x, head - 6.0), small(Anchor::Middle), name);
            } else {
                drawing.upwards((x + 4.0, head - 6.0), small(Anchor::Start), &cut_to(name, 110.0, LABEL_SIZE));
            }
        }
        for (ix, name) in self.rows.iter().enumerate() {
            let top = head + ix as f64 * row_height;
            drawing.text(
                (left - 6.0, top + row_height / 2.0 + 4.0),
                small(Anchor::End),
                &cut_to(name, width * 0.3, LABEL_SIZE),
            );
            for (column, found) in self.cells.get(ix).into_iter().flatten().take(n_columns).enumerate() {
                let at = (left + column as f64 * cell, top);
                let size = (cell - 1.0, row_height - 1.0);
                let Some(found) = found else {
                    drawing.text((at.0 + cell / 2.0, at.1 + row_height / 2.0 + 4.0), small(Anchor::Middle), "·");
                    continue;
                };
                let step = step_of(found.share);
                drawing.telling_rect(&found.tip, at, size, Colour::Ramp(step));
                if width_of(&found.shown, LABEL_SIZE) < cell - 4.0 {
                    let words = Words::new(Anchor::Middle, Colour::OnRamp(step)).sized(LABEL_SIZE);
                    drawing.text((at.0 + cell / 2.0, at.1 + row_height / 2.0 + 3.5), words, &found.shown);
                }
            }
        }
        self.draw_ramp(&mut drawing, left, bottom + 10.0);
        let mut note = self.note.clone();
        if n_columns < self.columns.len() {
            note = format!("first {n_columns} of these columns");
        }
        if !note.is_empty() {
            drawing.text((left, bottom + 42.0), small(Anchor::Start), &note);
            drawing.height += 4.0;
        }
        drawing
    }

    fn draw_titles(&self, drawing: &mut Drawing) {
        let bold = Words::new(Anchor::Start, Colour::Ink).bold();
        let most = drawing.width - 6.0;
        drawing.text((2.0, 14.0), bold, &cut_to(&self.title, most, 13.2));
        let axes = if self.row_title.is_empty() {
            format!("across: {}", self.column_title)
        } else {
            format!("down: {}, across: {}", self.row_title, self.column_title)
        };
        drawing.text((2.0, 32.0), Words::new(Anchor::Start, Colour::Muted), &cut_to(&axes, most, 12.0));
    }

    /// What the steps stand for.
    fn draw_ramp(&self, drawing: &mut Drawing, left: f64, top: f64) {
        let words = Words::new(Anchor::Start, Colour::Muted).sized(LABEL_SIZE);
        let from = left + width_of(&self.ends.0, LABEL_SIZE) + 6.0;
        drawing.text((left, top + 9.0), words, &self.ends.0);
        for step in 0..N_STEPS {
            drawing.rect((from + step as f64 * 7.0, top), (7.2, 11.0), Colour::Ramp(step));
        }
        let end = from + N_STEPS as f64 * 7.0;
        let frame = [(from, top), (end, top), (end, top + 11.0), (from, top + 11.0), (from, top)];
        drawing.polyline(&frame, Stroke::new(Colour::Grid, 1.0));
        drawing.text((end + 6.0, top + 9.0), words, &self.ends.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(n_rows: usize, n_columns: usize) -> HeatMap {
        let cell = |share: f64| Some(Cell { share, shown: "0.1".into(), tip: "<tip>".into() });
        let name = |ix: usize| format!("a rather long name {ix}");
        HeatMap {
            title: "t".into(),
            row_title: "r".into(),
            column_title: "c".into(),
            rows: (0..n_rows).map(name).collect(),
            columns: (0..n_columns).map(name).collect(),
            cells: (0..n_rows).map(|row| (0..n_columns).map(|_| cell(row as f64)).collect()).collect(),
            ends: ("0".into(), "1".into()),
            note: String::new(),
        }
    }

    #[test]
    fn columns_without_room_are_left_out_and_said() {
        let wide = map(3, 30).draw(720.0).as_file("x");
        assert_eq!(wide.matches("&lt;tip&gt;").count(), 90);
        let narrow = map(3, 30).draw(350.0).as_file("x");
        assert!(narrow.matches("&lt;tip&gt;").count() < 60 && narrow.contains("of these columns"));
    }

    #[test]
    fn empty_and_ragged_maps_are_drawn() {
        let mut ragged = map(3, 2);
        ragged.cells.pop();
        ragged.cells[0] = vec![None];
        for map in [map(0, 0), map(1, 0), map(0, 1), ragged] {
            assert!(map.draw(350.0).as_file("x").ends_with("</svg>\n"));
        }
    }
}
