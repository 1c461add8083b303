// A person with a browser, for clients that are sent to a page: presses on, logs in, and agrees.

// Goes to `link` and on from there until there is nothing more to press and nowhere to be sent; the last page.
export async function visit(link) {
  const cookies = new Map();
  const go = async (url, options = {}) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", ...options, headers: { ...options.headers, ...(cookie && { cookie }) } });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
      if (value) cookies.set(name, value);
      else cookies.delete(name);
    }
    return response;
  };
  const text = (html) => html.replaceAll("&amp;", "&");
  let url = new URL(link);
  let page = await (await go(url)).text();
  const fields = [...page.matchAll(/name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [name, text(value)]);
  const form = { method: "POST", body: new URLSearchParams(fields), headers: { origin: url.origin } };
  page = await (await go(new URL("/connect", url), form)).text();
  url = new URL(text(page.match(/href="([^"]+)"/)[1]));
  for (let hops = 0; hops < 20; hops++) {
    const response = await go(url);
    const location = response.headers.get("location");
    if (!location) return response.text();
    url = new URL(location, url);
  }
  throw new Error("too many redirects");
}

// Calls the tool three times and tells what came, how often somebody was asked, and the last page that they saw.
export async function told(listTools, callTool, onElicitation) {
  const asked = [];
  let page;
  onElicitation(({ mode, url, message }) => {
    asked.push({ mode, message });
    // As people do: they agree at once, and take their time.
    page = visit(url);
    return { action: "accept" };
  });
  const { tools } = await listTools();
  const first = await callTool(tools[0].name);
  // What the server offers is read as soon as somebody has logged in.
  let name;
  while (!name) name = (await listTools()).tools.find((tool) => tool.name.endsWith("_whoami"))?.name;
  const texts = [];
  for (let n = 0; n < 3; n++) texts.push((await callTool(name)).content[0].text);
  console.log(JSON.stringify({ first: tools[0].name, login: first.content[0].text, texts, asked, page: await page }));
}
