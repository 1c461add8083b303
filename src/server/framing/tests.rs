//! The framing guard on its own: every input is given whole and byte by byte, with the same verdict.

use super::*;

const BOUNDS: HeadBounds = HeadBounds {
    target: 64,
    field: 128,
    fields: 512,
    count: 8,
};

/// Bytes passed and the fault, with the input given in pieces of `size`.
fn run(input: &[u8], size: usize) -> (usize, Option<Fault>, Place, u32) {
    let mut framing = Framing::new(BOUNDS);
    let mut passed = 0;
    let mut held = Vec::new();
    for piece in input.chunks(size) {
        held.extend_from_slice(piece);
        let admitted = framing.admit(&held);
        passed += admitted;
        held.drain(..admitted);
        if framing.fault().is_some() {
            break;
        }
    }
    (passed, framing.fault(), framing.place(), framing.heads())
}

fn fault_of(input: &[u8]) -> Option<Fault> {
    let whole = run(input, usize::MAX);
    for size in [1, 2, 7] {
        let pieces = run(input, size);
        assert_eq!(
            (whole.0, whole.1),
            (pieces.0, pieces.1),
            "in pieces of {size}: {}",
            input.escape_ascii()
        );
    }
    whole.1
}

#[test]
fn well_formed_messages_pass_whole_one_after_the_other() {
    let input = b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
        POST /mcp HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tChunked \r\n\r\n3\r\nabc\r\n0A\r\n0123456789\r\n0\r\nT: v\r\n\r\n\
        GET http://a/x?y=z HTTP/1.0\r\nHost: a\r\nEmpty:\r\nX: caf\xc3\xa9\r\n\r\n";
    assert_eq!(fault_of(input), None);
    let (passed, _, place, heads) = run(input, usize::MAX);
    assert_eq!((passed, place, heads), (input.len(), Place::Between, 3));
}

#[test]
fn an_offer_of_h2c_passes_and_changes_nothing() {
    let input = b"POST /mcp HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nContent-Length: 3\r\nHost: a\r\n\
        HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\nUpgrade: h2c\r\n\r\nabc\
        PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    assert_eq!(fault_of(input), Some(Fault::Head(Violation::Malformed)));
    let (passed, _, _, heads) = run(input, usize::MAX);
    assert_eq!((passed, heads), (input.len() - 24, 1));
    let old = b"GET /mcp HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
    assert_eq!(fault_of(old), Some(Fault::Head(Violation::Malformed)));
}

#[test]
fn a_head_passes_only_when_it_is_complete() {
    let input = b"POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r";
    assert_eq!(run(input, 5), (0, None, Place::InHead, 0));
}

#[test]
fn doubtful_heads_are_refused_and_none_of_their_bytes_pass() {
    let fields: &[&[u8]] = &[
        b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        b"Content-Length: 3\r\nContent-Length: 3\r\n",
        b"Content-Length: 3\r\nContent-Length: 4\r\n",
        b"Content-Length: 3, 3\r\n",
        b"Content-Length: +3\r\n",
        b"Content-Length: -3\r\n",
        b"Content-Length: 0x3\r\n",
        b"Content-Length: 3 3\r\n",
        b"Content-Length:\r\n",
        b"Content-Length: 9999999999999999999\r\n",
        b"Content_Length: 3\r\n",
        b"Transfer_Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: \"chunked\"\r\n",
        b"Transfer-Encoding: \x0bchunked\r\n",
        b"Transfer-Encoding:\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"X: a\r\n Transfer-Encoding: chunked\r\n",
        b"X: a\r\n\tfolded\r\n",
        b"X: a\nY: b\r\n",
        b"X: a\rY: b\r\n",
        b"X: a\x00b\r\n",
        b"X: a\x7fb\r\n",
        b"X: a\x1bb\r\n",
        b"X\x00: a\r\n",
        b"X Y: a\r\n",
        b": a\r\n",
        b"X\r\n",
        b"X\xc3\xa9: a\r\n",
        b"Upgrade: h2c\r\n\r\n",
        b"Connection: keep-alive, Upgrade\r\n\r\n",
        b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
        b"Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n",
        b"Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: h2c\r\n",
        b"Connection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: websocket\r\n",
    ];
    for field in fields {
        let input = [b"POST /mcp HTTP/1.1\r\nHost: a\r\n", *field, b"\r\nabc"].concat();
        assert_eq!(
            fault_of(&input),
            Some(Fault::Head(Violation::Malformed)),
            "{}",
            field.escape_ascii()
        );
        assert_eq!(run(&input, usize::MAX).0, 0);
    }
}

#[test]
fn doubtful_request_lines_are_refused() {
    let lines: &[(&[u8], Violation)] = &[
        (b"GET /mcp\r\n", Violation::Malformed),
        (b"GET  /mcp HTTP/1.1\r\n", Violation::Malformed),
        (b"GET /mcp  HTTP/1.1\r\n", Violation::Malformed),
        (b"GET /m cp HTTP/1.1\r\n", Violation::Malformed),
        (b"GET\t/mcp HTTP/1.1\r\n", Violation::Malformed),
        (b"GET /mcp HTTP/1.1 \r\n", Violation::Malformed),
        (b"GET /mcp HTTP/1.1\n", Violation::Malformed),
        (b"GET /mcp\rHTTP/1.1\r\n", Violation::Malformed),
        (b"GET /mcp#x HTTP/1.1\r\n", Violation::Malformed),
        (b"GET /m\xc3\xa9 HTTP/1.1\r\n", Violation::Malformed),
        (b"GET /mcp HTTP/1.2\r\n", Violation::Malformed),
        (b"GET /mcp HTTP/2.0\r\n", Violation::Malformed),
        (b"GET /mcp http/1.1\r\n", Violation::Malformed),
        (b"PRI * HTTP/2.0\r\n", Violation::Malformed),
        (b"G\xc3T /mcp HTTP/1.1\r\n", Violation::Malformed),
        (b" GET /mcp HTTP/1.1\r\n", Violation::Malformed),
        (b"\r\nGET /mcp HTTP/1.1\r\n", Violation::Malformed),
        (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n",
            Violation::Malformed,
        ),
        (b"CONNECT a:443 HTTP/1.1\r\n", Violation::Tunnel),
        (b"TRACE /mcp HTTP/1.1\r\n", Violation::Trace),
    ];
    for (line, violation) in lines {
        let input = [*line, b"Host: a\r\n\r\n"].concat();
        assert_eq!(
            fault_of(&input),
            Some(Fault::Head(*violation)),
            "{}",
            line.escape_ascii()
        );
    }
}

#[test]
fn chunked_coding_in_http_1_0_is_refused() {
    let input = b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(fault_of(input), Some(Fault::Head(Violation::Malformed)));
}

#[test]
fn doubtful_chunks_break_the_body_and_nothing_after_them_passes() {
    let bodies: &[&[u8]] = &[
        b"3;x=y\r\nabc\r\n0\r\n\r\n",
        b"3 \r\nabc\r\n0\r\n\r\n",
        b" 3\r\nabc\r\n0\r\n\r\n",
        b"0x3\r\nabc\r\n0\r\n\r\n",
        b"+3\r\nabc\r\n0\r\n\r\n",
        b"3\nabc\r\n0\r\n\r\n",
        b"3\rabc\r\n0\r\n\r\n",
        b"\r\nabc\r\n0\r\n\r\n",
        b"3\r\nabcd\r\n0\r\n\r\n",
        b"3\r\nabc\n0\r\n\r\n",
        b"3\r\nabc0\r\n\r\n",
        b"000000003\r\nabc\r\n0\r\n\r\n",
        b"ffffffffffffffff\r\nabc",
        b"0\r\nbad trailer: x\r\n\r\n",
        b"0\r\n folded\r\n\r\n",
        b"0\r\nX: a\n\r\n",
        b"0\r\nX: a\x00\r\n\r\n",
        b"-1\r\nabc\r\n",
    ];
    for body in bodies {
        let input = [
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            *body,
            b"GET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
        ]
        .concat();
        assert_eq!(
            fault_of(&input),
            Some(Fault::Body),
            "{}",
            body.escape_ascii()
        );
        assert_eq!(run(&input, usize::MAX).3, 1);
    }
}

#[test]
fn each_size_is_refused_one_above_its_bound_and_passes_at_it() {
    let target = |n: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(n - 1));
    let field = |n: usize| format!("GET / HTTP/1.1\r\nX:{}\r\n\r\n", "x".repeat(n - 2));
    let count = |n: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "X:y\r\n".repeat(n));
    // Five lines of a hundred and one of what is missing.
    let sum = |n: usize| {
        let line = format!("X:{}\r\n", "x".repeat(98)).repeat(5);
        format!("GET / HTTP/1.1\r\n{line}X:{}\r\n\r\n", "x".repeat(n - 502))
    };
    type Make<'a> = &'a dyn Fn(usize) -> String;
    let cases: [(usize, Make<'_>, Violation); 4] = [
        (BOUNDS.target, &target, Violation::TargetTooLong),
        (BOUNDS.field, &field, Violation::FieldsTooLarge),
        (BOUNDS.count, &count, Violation::FieldsTooLarge),
        (BOUNDS.fields, &sum, Violation::FieldsTooLarge),
    ];
    for (bound, make, violation) in cases {
        assert_eq!(fault_of(make(bound - 1).as_bytes()), None);
        assert_eq!(fault_of(make(bound).as_bytes()), None);
        assert_eq!(
            fault_of(make(bound + 1).as_bytes()),
            Some(Fault::Head(violation))
        );
    }
}

#[test]
fn a_line_without_an_end_is_refused_at_its_bound() {
    let line = vec![b'X'; BOUNDS.target + 64];
    assert_eq!(fault_of(&line), Some(Fault::Head(Violation::TargetTooLong)));
    let field = [b"GET / HTTP/1.1\r\n".to_vec(), vec![b'X'; BOUNDS.field + 8]].concat();
    assert_eq!(
        fault_of(&field),
        Some(Fault::Head(Violation::FieldsTooLarge))
    );
}
