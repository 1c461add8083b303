//! `usher`: arguments to a plan, the plan to an app, the app's end to an exit code.

fn main() {}
