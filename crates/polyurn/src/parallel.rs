//! Independent jobs on several threads, results in the order of the inputs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often [`map_watched`] calls its watcher while nothing is finished.
const WATCH: Duration = Duration::from_millis(100);

/// Applies `f` to every item. Which thread does which item does not matter to the result.
pub fn map<T: Sync, R: Send>(items: &[T], n_threads: usize, f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    map_watched(items, n_threads, f, |_| {})
}

/// The same, and tells `watch`, on the thread that calls this, how many items are finished: now and then, and whenever one
/// is.
pub fn map_watched<T: Sync, R: Send>(
    items: &[T],
    n_threads: usize,
    f: impl Fn(&T) -> R + Sync,
    mut watch: impl FnMut(usize),
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    let (finished, news) = channel();
    std::thread::scope(|scope| {
        let (next, results, f) = (&next, &results, &f);
        let worker = || {
            let finished = finished.clone();
            move || {
                loop {
                    let ix = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(ix) else { break };
                    let result = f(item);
                    results.lock().expect("no thread panics while holding it")[ix] = Some(result);
                    // Nobody listens any more only when the caller is unwinding.
                    let _ = finished.send(());
                }
            }
        };
        // A system that starts no more threads still gets its answer: by those that there are, or by this one.
        let start = |_: &usize| std::thread::Builder::new().spawn_scoped(scope, worker()).is_ok();
        if (0..n_threads.clamp(1, items.len().max(1))).take_while(start).count() == 0 {
            worker()();
        }
        drop(finished);
        let mut n_finished = 0;
        loop {
            match news.recv_timeout(WATCH) {
                Ok(()) => n_finished += 1,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            watch(n_finished);
        }
    });
    let results = results.into_inner().expect("no thread panics while holding it");
    results.into_iter().map(|result| result.expect("every item was done")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_order_whatever_the_threads() {
        let items: Vec<u64> = (0..100).collect();
        for n_threads in [1, 2, 7] {
            let mut most_seen = 0;
            let squares = map_watched(&items, n_threads, |x| x * x, |n| most_seen = n);
            assert!(squares.iter().zip(&items).all(|(square, x)| *square == x * x));
            assert_eq!(most_seen, 100);
        }
        assert!(map(&[] as &[u8], 4, |_| 0).is_empty());
    }
}
