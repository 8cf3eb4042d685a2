//! Work of a run on several threads: steps so short that threads must neither fall asleep between them nor swap what they
//! work on.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

/// Sets a flag when it goes out of scope, also when something panics: somebody waits for it.
struct AtTheEnd<'f, F: Fn()>(&'f F);

impl<F: Fn()> Drop for AtTheEnd<'_, F> {
    fn drop(&mut self) {
        self.0();
    }
}

/// Looks before a waiting thread offers its place to others that may be waiting for one: there may be more threads than cores.
const LOOKS: u32 = 1000;

/// How long somebody has been waiting.
#[derive(Default)]
struct Patience(u32);

impl Patience {
    fn wait(&mut self) {
        self.0 += 1;
        if self.0 < LOOKS {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// Does something while the pool's other threads stay awake: what it hands them is over sooner than they would wake up.
///
/// They wait for work in a loop of ours, and take their share of the work from within it. Never the other way round: a
/// thread that entered the loop in the middle of its share would not come back to finish it. So nothing is shared out
/// before all of them are in.
pub fn awake<R>(f: impl FnOnce() -> R) -> R {
    let own_thread = rayon::current_thread_index();
    let (flag, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (is_over, n_waiting) = (&flag, &count);
    let end = || is_over.store(true, Ordering::Relaxed);
    rayon::in_place_scope(|scope| {
        let _end = AtTheEnd(&end);
        scope.spawn_broadcast(move |_, context| {
            n_waiting.fetch_add(1, Ordering::Relaxed);
            let mut patience = Patience::default();
            while Some(context.index()) != own_thread && !is_over.load(Ordering::Relaxed) {
                match rayon::yield_now() {
                    Some(rayon::Yield::Executed) => patience = Patience::default(),
                    _ => patience.wait(),
                }
            }
        });
        while n_waiting.load(Ordering::Relaxed) < rayon::current_num_threads() {
            rayon::yield_now();
        }
        f()
    })
}

/// Shares items out in parts of `n_at_once`, each with the number of its first item. With two threads a part goes to the same thread every time,
/// in whose cache it still is.
pub fn share_out<T: Send>(items: &mut [T], n_at_once: usize, f: &(impl Fn(usize, &mut [T]) + Sync)) {
    share_out_from(0, items, n_at_once, f);
}

fn share_out_from<T: Send>(first: usize, items: &mut [T], n_at_once: usize, f: &(impl Fn(usize, &mut [T]) + Sync)) {
    if items.len() <= n_at_once {
        return f(first, items);
    }
    let n_left = items.len().div_ceil(n_at_once) / 2 * n_at_once;
    let (left, right) = items.split_at_mut(n_left);
    both(|| share_out_from(first, left, n_at_once, f), || share_out_from(first + n_left, right, n_at_once, f));
}

/// Does both, the second on another thread if one has the time. Waits for it without falling asleep.
pub fn both(here: impl FnOnce() + Send, there: impl FnOnce() + Send) {
    const BEGUN: u8 = 1;
    const DONE: u8 = 2;
    let state = &AtomicU8::new(0);
    let done = || state.store(DONE, Ordering::Relaxed);
    rayon::join(
        || {
            here();
            let mut patience = Patience::default();
            while state.load(Ordering::Relaxed) == BEGUN {
                patience.wait();
            }
        },
        || {
            state.store(BEGUN, Ordering::Relaxed);
            let _done = AtTheEnd(&done);
            there();
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;
    use std::hint::black_box;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// Many short jobs one after another, each with many shares: threads enter and leave all the time. A thread that
    /// entered in the middle of its share would never end it, so somebody looks at the clock.
    #[test]
    fn every_item_is_handled_once_whenever_threads_come_and_go() {
        let (is_over, over) = channel();
        std::thread::spawn(move || {
            for (n_threads, n_rounds) in [(2, 5000), (3, 300), (8, 100)] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads");
                let mut items = vec![0usize; 97];
                pool.install(|| {
                    for round in 0..n_rounds {
                        // As a run does: something for all threads just before it starts.
                        share_out(&mut items, 1, &|_, items| items.fill(0));
                        awake(|| {
                            for share in 0..4 {
                                items.par_iter_mut().for_each(|item| (0..100).for_each(|_| *item = black_box(*item)));
                                share_out(&mut items, 7 + round % 40, &|first, items| {
                                    items.iter_mut().enumerate().for_each(|(ix, item)| *item += first + ix + share);
                                });
                            }
                        });
                        assert!(items.iter().enumerate().all(|(ix, item)| *item == 4 * ix + 6));
                    }
                });
            }
            is_over.send(()).expect("somebody waits");
        });
        over.recv_timeout(Duration::from_secs(300)).expect("no thread waits for ever, and no item is wrong");
    }

    #[test]
    fn a_panic_in_any_share_ends_the_waiting() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
        for culprit in 0..4 {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                pool.install(|| {
                    awake(|| {
                        share_out(&mut [0; 4], 1, &|first, _| assert_ne!(first, culprit, "the panic that is expected"));
                    });
                });
            }));
            assert!(outcome.is_err());
        }
    }
}
