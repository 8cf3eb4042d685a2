//! Reading a stream in a thread of its own.

use polyurn::graph::{BatchOptions, Batcher, Model, RowBatch};
use polyurn::io::{ReadOptions, read_rows};
use polyurn::{Error, Stop};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Time between two looks at the clock while the stream is silent.
pub const POLL: Duration = Duration::from_millis(15);

/// What to read, and how.
#[derive(Debug, Clone)]
pub struct Reading {
    pub path: PathBuf,
    pub options: ReadOptions,
    pub n_passes: u32,
    pub batches: BatchOptions,
}

/// What the reader says.
#[derive(Debug)]
pub enum Event {
    Batch(Box<RowBatch>),
    PassStarts,
    Failed(Error),
}

impl Reading {
    /// Reads in a thread of its own: a stream may be silent for long, and then a time limit still holds.
    ///
    /// # Errors
    /// When there is none to be had.
    pub fn start(&self, model: &Model) -> polyurn::Result<Receiver<Event>> {
        // Nothing waits in the channel: there is the batch in work and the one being read.
        let (sender, events) = sync_channel(0);
        let (reading, model) = (self.clone(), model.clone());
        let reader = std::thread::Builder::new().spawn(move || {
            if let Err(error) = reading.run(&model, &sender) {
                // Nobody listens any more when the run was stopped.
                let _ = sender.send(Event::Failed(error));
            }
        });
        reader.map_err(Error::NoThread)?;
        Ok(events)
    }

    fn run(&self, model: &Model, sender: &SyncSender<Event>) -> polyurn::Result<()> {
        let send = |event| sender.send(event).map_err(|_| Error::Stopped(Stop::Cancelled));
        let mut batcher = Batcher::new(model, self.batches.clone(), |batch| send(Event::Batch(Box::new(batch))))?;
        for pass in 0..self.n_passes {
            if pass > 0 {
                send(Event::PassStarts)?;
            }
            read_rows(&self.path, &self.options, &mut batcher)?;
            batcher.finish_pass()?;
        }
        Ok(())
    }

    /// What the source is called.
    pub fn name(&self) -> String {
        if self.path == Path::new("-") { "standard input".into() } else { self.path.display().to_string() }
    }
}
