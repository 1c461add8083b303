//! Failed attempts by address: counted within a minute, bounded in number (SECURITY AUTHN-8).

use std::{
    collections::{HashMap, VecDeque},
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::metrics::{Bound, reached};

/// What attempts are counted within.
const WINDOW: Duration = Duration::from_secs(60);
/// Addresses that are counted at once; beyond that the oldest are forgotten.
const MOST: usize = 16_384;

/// The counts.
pub struct Failures {
    limit: u32,
    // Taken when an attempt fails, and where somebody has to be asked about a token: nobody who is known waits for it.
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    of: HashMap<IpAddr, Count>,
    /// Each of them once, oldest first.
    order: VecDeque<IpAddr>,
}

struct Count {
    since: Instant,
    failed: u32,
}

impl Failures {
    /// So many a minute are no matter.
    pub fn new(limit: u32) -> Self {
        Self {
            limit,
            counts: Mutex::default(),
        }
    }

    /// Takes note of a failed attempt; how long to wait if there were too many.
    pub fn note(&self, address: IpAddr) -> Option<Duration> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        // Not before: whoever had the lock meanwhile may have noted a later one.
        let now = Instant::now();
        let count = counts.count(network(address), now);
        count.failed = count.failed.saturating_add(1);
        (count.failed > self.limit).then(|| {
            reached(Bound::FailedAuthentications);
            WINDOW.saturating_sub(now.duration_since(count.since))
        })
    }

    /// How long an address has to wait that failed too often. Counts nothing.
    pub fn over(&self, address: IpAddr) -> Option<Duration> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.of.get(&network(address))?;
        let left = WINDOW.checked_sub(Instant::now().duration_since(count.since))?;
        (count.failed > self.limit && !left.is_zero()).then_some(left)
    }
}

impl Counts {
    /// The count of an address within this minute.
    fn count(&mut self, address: IpAddr, now: Instant) -> &mut Count {
        while let Some(oldest) = self.order.front().and_then(|oldest| self.of.get(oldest))
            && now.duration_since(oldest.since) >= WINDOW
        {
            self.forget_oldest();
        }
        if !self.of.contains_key(&address) {
            if self.of.len() >= MOST {
                self.forget_oldest();
            }
            self.order.push_back(address);
        }
        self.of.entry(address).or_insert(Count {
            since: now,
            failed: 0,
        })
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.order.pop_front() {
            self.of.remove(&oldest);
        }
    }
}

/// Of IPv6 the part that one customer has: there are too many addresses in it to count each.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failures_are_counted_by_address_within_a_minute() {
        let failures = Failures::new(2);
        let note = |address: &str| failures.note(address.parse().unwrap()).is_some();
        assert_eq!(
            [note("192.0.2.1"), note("192.0.2.1"), note("192.0.2.1")],
            [false, false, true]
        );
        let over = |address: &str| failures.over(address.parse().unwrap());
        assert_eq!([over("192.0.2.1"), over("192.0.2.2")], [Some(WINDOW), None]);
        assert!(!note("192.0.2.2"));
        assert_eq!(
            [
                note("2001:db8::1"),
                note("2001:db8::2"),
                note("2001:db8::3")
            ],
            [false, false, true]
        );
        assert!(!note("2001:db8:0:1::1"));
        assert_eq!(over("2001:db8::4"), Some(WINDOW));
        tokio::time::advance(WINDOW).await;
        assert_eq!(over("192.0.2.1"), None);
        assert!(!note("192.0.2.1"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_addresses_takes_a_bounded_place() {
        let failures = Failures::new(1);
        for number in 0..(MOST as u32 + 100) {
            failures.note(IpAddr::from(number.to_be_bytes()));
        }
        let counts = failures.counts.lock().unwrap();
        assert_eq!((counts.of.len(), counts.order.len()), (MOST, MOST));
    }

    #[tokio::test(start_paused = true)]
    async fn only_an_address_that_is_not_counted_yet_takes_the_place_of_the_oldest() {
        let failures = Failures::new(0);
        let address = |number: usize| IpAddr::from((number as u32).to_be_bytes());
        for number in 0..MOST {
            failures.note(address(number));
        }
        let counted = |number| failures.over(address(number)).is_some();
        failures.note(address(MOST - 1));
        assert!(counted(0) && counted(MOST - 1));
        failures.note(address(MOST));
        assert!(!counted(0) && counted(1) && counted(MOST));
        // What is over gives way first, and all of it.
        tokio::time::advance(WINDOW).await;
        failures.note(address(1));
        let counts = failures.counts.lock().unwrap();
        assert_eq!((counts.of.len(), counts.order.len()), (1, 1));
    }
}
