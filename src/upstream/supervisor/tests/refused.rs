//! What a refused connection tells of a server.

use super::*;

/// A server to which no connection comes about while that is set, and whose calls take for ever otherwise.
fn refusing(down: &Arc<AtomicUsize>) -> Arc<Processes> {
    let down = Arc::clone(down);
    serving(move |number, sent| match sent.method.as_str() {
        _ if down.load(Ordering::SeqCst) > 0 => Play::Fail(UpstreamError::unconnected("refused")),
        "tools/call" => Play::Hang,
        _ => healthy(number, sent),
    })
}

#[tokio::test(start_paused = true)]
async fn one_call_that_is_refused_a_connection_tells_that_the_server_is_gone() {
    let down = Arc::new(AtomicUsize::new(0));
    let processes = refusing(&down);
    let (sink, upstream, _tasks) = started(&an_address(), &processes);
    upstream.settled().await;
    down.store(1, Ordering::SeqCst);
    let began = Instant::now();
    assert!(called(&upstream).await.is_err());
    sink.reach(2).await;
    assert!(sink.last().away);
    assert_eq!(upstream.status().state, State::Away);
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn calls_under_way_outlive_a_moment_in_which_connections_are_refused() {
    for (passes, state) in [(true, State::Ready), (false, State::Away)] {
        let down = Arc::new(AtomicUsize::new(0));
        let processes = refusing(&down);
        let (_sink, upstream, _tasks) = started(&an_address(), &processes);
        upstream.settled().await;
        let mut under_way = Box::pin(called(&upstream));
        assert!(futures_util::poll!(under_way.as_mut()).is_pending());
        down.store(1, Ordering::SeqCst);
        assert!(called(&upstream).await.is_err());
        sleep(Duration::from_secs(1)).await;
        assert_eq!(upstream.status().state, State::Ready);
        assert!(futures_util::poll!(under_way.as_mut()).is_pending());
        if passes {
            down.store(0, Ordering::SeqCst);
        }
        sleep(Duration::from_secs(7)).await;
        assert_eq!(upstream.status().state, state);
    }
}
