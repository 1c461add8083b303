//! A browser without a window: cookies, forms, redirects, and a person who presses on.

use std::{collections::HashMap, net::SocketAddr};

use http::Method;

use crate::harness::{Answer, exchange};

/// A browser of somebody's own.
#[derive(Debug, Default, Clone)]
pub(super) struct Browser {
    /// By port: these tests have one host.
    jar: HashMap<u16, HashMap<String, String>>,
}

impl Browser {
    /// Every value that it has been given to bring back.
    pub(super) fn cookies(&self) -> Vec<String> {
        let jars = self.jar.values();
        jars.flat_map(|jar| jar.values().cloned()).collect()
    }

    pub(super) async fn open(&mut self, url: &str) -> Answer {
        self.send(Method::GET, url, &[], "").await
    }

    pub(super) async fn send(
        &mut self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let (address, path) = place(url);
        let cookies = self.jar.entry(address.port()).or_default();
        let line: Vec<_> = cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let line = line.join("; ");
        let mut headers = headers.to_vec();
        if !line.is_empty() {
            headers.push(("cookie", &line));
        }
        if method == Method::POST {
            headers.push(("content-type", "application/x-www-form-urlencoded"));
        }
        let answer = exchange(address, method, &path, &headers, body.as_bytes()).await;
        for set in answer.headers.get_all("set-cookie") {
            let (pair, rest) = set.to_str().unwrap().split_once(';').unwrap();
            assert!(
                rest.contains("HttpOnly") && rest.contains("SameSite=Lax"),
                "{rest}"
            );
            let (name, value) = pair.split_once('=').unwrap();
            if rest.contains("Max-Age=0") {
                cookies.remove(name);
            } else {
                cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }

    /// Presses the button of a page: the page that it leads to.
    pub(super) async fn press(&mut self, page: &str, body: &str) -> Answer {
        let (address, _) = place(page);
        let form = form(body);
        let url = format!("http://{address}/connect");
        let from = format!("http://{address}");
        let headers = [("origin", from.as_str()), ("sec-fetch-site", "same-origin")];
        self.send(Method::POST, &url, &headers, &form).await
    }

    /// Begins a login: the address at the authorization server that the browser is sent to.
    pub(super) async fn leave(&mut self, link: &str) -> String {
        let page = self.open(link).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let left = self.press(link, &page.body).await;
        assert_eq!(left.status, 200, "{}", left.body);
        between(&left.body, "href=\"", "\"").replace("&amp;", "&")
    }

    /// Is sent on from the authorization server: the address that it comes back to.
    pub(super) async fn sent_back(&mut self, at: &str) -> String {
        let answer = self.open(at).await;
        assert_eq!(answer.status, 302, "{}", answer.body);
        answer.headers["location"].to_str().unwrap().to_owned()
    }

    /// The whole login, as somebody does it who agrees to everything.
    pub(super) async fn log_in(&mut self, link: &str) -> Answer {
        let at = self.leave(link).await;
        let back = self.sent_back(&at).await;
        self.open(&back).await
    }
}

/// What is in the form of a page.
pub(super) fn form(body: &str) -> String {
    let value = |name: &str| between(body, &format!("name=\"{name}\" value=\""), "\"");
    let form = format!("login={}&token={}", value("login"), value("token"));
    // Whoever presses has ticked the box, where there is one.
    if body.contains("name=\"mine\" value=\"yes\"") {
        form + "&mine=yes"
    } else {
        form
    }
}

fn between(text: &str, before: &str, after: &str) -> String {
    let (_, rest) = text
        .split_once(before)
        .unwrap_or_else(|| panic!("no `{before}` in {text}"));
    rest.split_once(after).unwrap().0.to_owned()
}

/// The address and the path of a URL on this machine.
fn place(url: &str) -> (SocketAddr, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    (host.parse().unwrap(), format!("/{path}"))
}
