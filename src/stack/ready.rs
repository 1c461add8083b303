//! A service that was polled ready, taken along by a call that waits.

/// The service that is ready, for a call that goes on later; a clone, which is not ready, stays in its place.
pub(super) fn take_ready<S: Clone>(service: &mut S) -> S {
    let clone = service.clone();
    std::mem::replace(service, clone)
}
