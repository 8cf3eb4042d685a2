//! Products of many weights that would underflow on the way.

/// Numbers below this are scaled up before they can underflow.
const RESCALE_BELOW: f64 = 1e-100;

/// A running product kept as factor and log.
#[derive(Debug, Clone, Copy)]
pub struct RunningProduct {
    factor: f64,
    ln: f64,
}

impl Default for RunningProduct {
    fn default() -> Self {
        RunningProduct { factor: 1.0, ln: 0.0 }
    }
}

impl RunningProduct {
    /// Takes another factor.
    pub fn multiply(&mut self, factor: f64) {
        self.factor *= factor;
        if self.factor < RESCALE_BELOW || self.factor > 1.0 / RESCALE_BELOW {
            self.ln += self.factor.ln();
            self.factor = if self.factor > 0.0 { 1.0 } else { 0.0 };
        }
    }

    /// Takes another factor, given as its log.
    pub fn multiply_by_exp(&mut self, ln: f64) {
        self.ln += ln;
    }

    /// Divides a table by its largest entry when that has become very small or large, and takes that entry instead.
    pub fn rescale(&mut self, table: &mut [f64]) {
        let max = table.iter().copied().fold(0.0, f64::max);
        if max > 0.0 && !(RESCALE_BELOW..1.0 / RESCALE_BELOW).contains(&max) {
            table.iter_mut().for_each(|entry| *entry /= max);
            self.ln += max.ln();
        }
    }

    /// ln of the product.
    pub fn ln(&self) -> f64 {
        if self.factor == 0.0 { f64::NEG_INFINITY } else { self.factor.ln() + self.ln }
    }
}
