// What a person and a browser do during a login, for the JavaScript clients; and the provider that both SDKs ask.

// Follows the redirects of an authorization server, with its cookies, up to the client's own page; what that page is given.
export async function approve(url, redirectUri) {
  const cookies = new Map();
  for (let hops = 0; hops < 20; hops++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: cookie ? { cookie } : {} });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
      if (value) cookies.set(name, value);
      else cookies.delete(name);
    }
    const location = response.headers.get("location");
    if (!location) throw new Error(`no redirect from ${url}: ${response.status} ${await response.text()}`);
    url = new URL(location, url);
    if (url.href.startsWith(redirectUri)) return url.searchParams;
  }
  throw new Error("too many redirects");
}

// A provider that keeps everything in memory, and what it was asked in `log`.
export class Memory {
  redirectUrl = "http://127.0.0.1:9/callback";
  log = [];

  get clientMetadata() {
    return {
      client_name: "usher tests",
      redirect_uris: [this.redirectUrl],
      grant_types: ["authorization_code"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    };
  }
  clientInformation() {
    return this.information;
  }
  saveClientInformation(information) {
    this.log.push("registered");
    this.information = information;
  }
  tokens() {
    return this.kept;
  }
  saveTokens(tokens) {
    this.log.push(`token for ${tokens.scope}`);
    this.kept = tokens;
  }
  redirectToAuthorization(url) {
    const asked = url.searchParams;
    const proof = asked.get("code_challenge_method") === "S256" ? "PKCE" : "no PKCE";
    this.log.push(`login for ${asked.get("scope")} at ${asked.get("resource")} with ${proof}`);
    this.asked = url;
  }
  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }
  codeVerifier() {
    return this.verifier;
  }
  // Newer SDKs keep what they found out between the two halves of a login.
  saveDiscoveryState(state) {
    this.discovery = state;
  }
  discoveryState() {
    return this.discovery;
  }
}
