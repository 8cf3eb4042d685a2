//! Independent runs on several threads, results in the order of the inputs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Applies `f` to every item. Which thread does which item does not matter to the result.
pub fn map<T: Sync, R: Send>(items: &[T], n_threads: usize, f: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..n_threads.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let ix = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(ix) else { break };
                    let result = f(item);
                    results.lock().expect("no thread panics while holding it")[ix] = Some(result);
                }
            });
        }
    });
    let results = results.into_inner().expect("no thread panics while holding it");
    results.into_iter().map(|result| result.expect("every item was done")).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_keep_their_order_whatever_the_threads() {
        let items: Vec<u64> = (0..100).collect();
        for n_threads in [1, 2, 7] {
            let squares = super::map(&items, n_threads, |x| x * x);
            assert!(squares.iter().zip(&items).all(|(square, x)| *square == x * x));
        }
        assert!(super::map(&[] as &[u8], 4, |_| 0).is_empty());
    }
}
