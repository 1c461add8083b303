//! Ambiguous framing is refused, and what follows it is never a request (SECURITY HTTP-1).
