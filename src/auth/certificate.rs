//! Client certificates: the few things that are read of one, after TLS has verified it.
//!
//! Guarantees: nothing is believed here that the handshake has not proved; a certificate that cannot be read whole gives no
//! name. Deliberately absent: chains, signatures, revocation lists.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use tokio_util::sync::CancellationToken;

use super::{
    spec::{CertificateName, CertificateSpec},
    time,
};
use crate::call::{BY_CERTIFICATE, End, Identity, IdentityKind, Principal};

/// What a client certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    uris: Vec<String>,
    names: Vec<String>,
    mails: Vec<String>,
    common_name: Option<String>,
    not_after: u64,
}

/// What is asked of a certificate of one's own before it is shown to anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outline {
    /// 1 to 3.
    pub version: u8,
    /// Unix seconds of its end.
    pub not_after: u64,
}

/// Bytes that are no certificate that could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a certificate that cannot be read")]
pub struct NotACertificate;

/// Names of one certificate.
const MOST: usize = 256;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const LONG_TIME: u8 = 0x18;
/// `[0]` and `[3]` of TBSCertificate.
const VERSION: u8 = 0xA0;
const EXTENSIONS: u8 = 0xA3;
/// 2.5.29.17 and 2.5.4.3.
const ALT_NAMES: &[u8] = &[0x55, 0x1D, 0x11];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

impl Certificate {
    /// Reads the DER of one (RFC 5280, 4.1).
    ///
    /// # Errors
    /// When it is not well formed as far as it is read.
    pub fn read(der: &[u8]) -> Result<Self, NotACertificate> {
        let (outline, mut body) = begun(der)?;
        let mut found = Self {
            uris: Vec::new(),
            names: Vec::new(),
            mails: Vec::new(),
            common_name: common_name(body.expect(SEQUENCE)?)?,
            not_after: outline.not_after,
        };
        body.expect(SEQUENCE)?; // public key
        while !body.0.is_empty() {
            let (tag, value) = body.next()?;
            if tag == EXTENSIONS {
                found.extensions(value)?;
            }
        }
        Ok(found)
    }

    /// Unix seconds of its end.
    pub const fn not_after(&self) -> u64 {
        self.not_after
    }

    /// Who that is; `None` when it has no name of the kinds that are looked for.
    pub fn identity(&self, spec: &CertificateSpec) -> Option<Arc<Identity>> {
        let name = spec.user.iter().find_map(|kind| self.name(*kind))?;
        let name: Arc<str> = name.into();
        Some(Arc::new(Identity {
            principal: Principal::new(format!("{BY_CERTIFICATE}{name}")),
            kind: IdentityKind::User,
            name,
            issuer: None,
            groups: spec.groups.iter().cloned().collect(),
            tenant: spec.tenant.clone(),
            scopes: BTreeSet::new(),
            client: None,
            owner: None,
            until: time(self.not_after).map(End::sharp),
            revoked: CancellationToken::new(),
            key: None,
            assertion: None,
        }))
    }

    /// The one name of a kind. Where there are several, none is it: which one counts would be the client's choice.
    fn name(&self, kind: CertificateName) -> Option<&str> {
        let list = match kind {
            CertificateName::SanUri => &self.uris,
            CertificateName::SanDns => &self.names,
            CertificateName::SanEmail => &self.mails,
            CertificateName::SubjectCn => return self.common_name.as_deref(),
        };
        match list.as_slice() {
            [one] => Some(one),
            _ => None,
        }
    }

    fn extensions(&mut self, value: &[u8]) -> Result<(), NotACertificate> {
        let mut list = Der(Der(value).expect(SEQUENCE)?);
        while !list.0.is_empty() {
            let mut extension = Der(list.expect(SEQUENCE)?);
            if extension.expect(OID)? != ALT_NAMES {
                continue;
            }
            let (mut tag, mut value) = extension.next()?;
            if tag != OCTETS {
                (tag, value) = extension.next()?; // after `critical`
            }
            if tag != OCTETS {
                return Err(NotACertificate);
            }
            self.alternative_names(value)?;
        }
        Ok(())
    }

    fn alternative_names(&mut self, value: &[u8]) -> Result<(), NotACertificate> {
        let mut names = Der(Der(value).expect(SEQUENCE)?);
        let mut count = 0;
        while !names.0.is_empty() {
            let (tag, value) = names.next()?;
            count += 1;
            if count > MOST {
                return Err(NotACertificate);
            }
            match tag {
                0x81 => self.mails.push(text(value)?),
                0x82 => self.names.push(text(value)?),
                0x86 => self.uris.push(text(value)?),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Outline {
    /// Reads the DER of a certificate, whatever its names are.
    ///
    /// # Errors
    /// When it is not well formed as far as it is read.
    pub fn read(der: &[u8]) -> Result<Self, NotACertificate> {
        begun(der).map(|(outline, _)| outline)
    }

    /// That of the first certificate in PEM, if it can be read.
    pub fn of_pem(pem: &[u8]) -> Option<Self> {
        let first = CertificateDer::pem_slice_iter(pem).next()?.ok()?;
        Self::read(&first).ok()
    }

    /// When it ends.
    pub fn end(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(self.not_after)
    }

    /// The day of its end, `2026-11-27`.
    pub fn last_day(&self) -> String {
        jiff::Timestamp::try_from(self.end())
            .map_or_else(|_| String::new(), |end| end.strftime("%F").to_string())
    }
}

/// What stands before the subject, and what is left.
fn begun(der: &[u8]) -> Result<(Outline, Der<'_>), NotACertificate> {
    let mut outer = Der(der);
    let mut certificate = Der(outer.expect(SEQUENCE)?);
    let mut body = Der(certificate.expect(SEQUENCE)?);
    // The first version says nothing of it, the others count from 0.
    let version = match body.0.first() {
        Some(&VERSION) => match Der(body.expect(VERSION)?).expect(INTEGER)? {
            [number @ 0..=2] => number + 1,
            _ => return Err(NotACertificate),
        },
        Some(_) | None => 1,
    };
    body.expect(INTEGER)?; // serial number
    body.expect(SEQUENCE)?; // algorithm
    body.expect(SEQUENCE)?; // issuer
    let mut validity = Der(body.expect(SEQUENCE)?);
    validity.next()?;
    let (form, not_after) = validity.next()?;
    let not_after = moment(form, not_after)?;
    Ok((Outline { version, not_after }, body))
}

/// The one common name of a subject.
fn common_name(subject: &[u8]) -> Result<Option<String>, NotACertificate> {
    let mut found = Vec::new();
    let mut parts = Der(subject);
    while !parts.0.is_empty() {
        let mut set = Der(parts.expect(SET)?);
        while !set.0.is_empty() {
            let mut pair = Der(set.expect(SEQUENCE)?);
            let kind = pair.expect(OID)?;
            let (tag, value) = pair.next()?;
            // UTF8String and PrintableString; older spellings are not guessed at.
            if kind == COMMON_NAME && matches!(tag, 0x0C | 0x13) {
                found.push(text(value)?);
            }
        }
    }
    Ok(match found.as_mut_slice() {
        [one] => Some(std::mem::take(one)),
        _ => None,
    })
}

/// A name: text without control characters. A NUL in the middle has fooled others.
fn text(bytes: &[u8]) -> Result<String, NotACertificate> {
    let text = std::str::from_utf8(bytes).map_err(|_| NotACertificate)?;
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(NotACertificate);
    }
    Ok(text.to_owned())
}

/// Unix seconds of `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`.
fn moment(form: u8, text: &[u8]) -> Result<u64, NotACertificate> {
    let digits = text.strip_suffix(b"Z").ok_or(NotACertificate)?;
    let length = match form {
        UTC_TIME => 12,
        LONG_TIME => 14,
        _ => return Err(NotACertificate),
    };
    if digits.len() != length || !digits.iter().all(u8::is_ascii_digit) {
        return Err(NotACertificate);
    }
    let (year, rest) = digits.split_at(length - 10);
    let number = |digits: &[u8]| {
        digits
            .iter()
            .fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'))
    };
    let year = match (form, number(year)) {
        (UTC_TIME, short) if short >= 50 => 1900 + short,
        (UTC_TIME, short) => 2000 + short,
        (_, year) => year,
    };
    let parts: Vec<u64> = rest.chunks(2).map(number).collect();
    let [month, day, hour, minute, second] = parts[..] else {
        return Err(NotACertificate);
    };
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return Err(NotACertificate);
    }
    Ok(days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days since 1970-01-01 in the Gregorian calendar.
const fn days(year: u64, month: u64, day: u64) -> u64 {
    // The year begins in March here, so that the day that comes and goes is its last.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let before = year * 365 + year / 4 - year / 100 + year / 400;
    before + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// What is left of a DER value.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next element: its tag and its content.
    fn next(&mut self) -> Result<(u8, &'a [u8]), NotACertificate> {
        let (&tag, rest) = self.0.split_first().ok_or(NotACertificate)?;
        let (&first, rest) = rest.split_first().ok_or(NotACertificate)?;
        // Tags of several bytes do not occur where we read.
        if tag & 0x1F == 0x1F {
            return Err(NotACertificate);
        }
        let (length, rest) = match first {
            0..=0x7F => (usize::from(first), rest),
            0x81..=0x83 => {
                let (bytes, rest) = rest
                    .split_at_checked(usize::from(first & 0x7F))
                    .ok_or(NotACertificate)?;
                let length = bytes
                    .iter()
                    .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
                (length, rest)
            }
            _ => return Err(NotACertificate),
        };
        let (value, rest) = rest.split_at_checked(length).ok_or(NotACertificate)?;
        self.0 = rest;
        Ok((tag, value))
    }

    fn expect(&mut self, wanted: u8) -> Result<&'a [u8], NotACertificate> {
        match self.next()? {
            (tag, value) if tag == wanted => Ok(value),
            _ => Err(NotACertificate),
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn certificate(alter: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.remove(DnType::CommonName);
        alter(&mut params);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn names_and_the_end_of_a_certificate_are_read() {
        let der = certificate(|params| {
            params.distinguished_name.push(DnType::CommonName, "ana");
            params.not_after = rcgen::date_time_ymd(2031, 2, 28);
            params.subject_alt_names = vec![
                SanType::URI("spiffe://example.com/ci".try_into().unwrap()),
                SanType::DnsName("ci.example.com".try_into().unwrap()),
                SanType::Rfc822Name("ana@example.com".try_into().unwrap()),
            ];
        });
        let read = Certificate::read(&der).unwrap();
        assert_eq!(read.not_after(), 1_930_003_200);
        let name = |kind| read.name(kind);
        assert_eq!(
            name(CertificateName::SanUri),
            Some("spiffe://example.com/ci")
        );
        assert_eq!(name(CertificateName::SanDns), Some("ci.example.com"));
        assert_eq!(name(CertificateName::SanEmail), Some("ana@example.com"));
        assert_eq!(name(CertificateName::SubjectCn), Some("ana"));
    }

    #[test]
    fn of_two_names_of_a_kind_none_counts() {
        let der = certificate(|params| {
            params.subject_alt_names = vec![
                SanType::DnsName("a.example".try_into().unwrap()),
                SanType::DnsName("b.example".try_into().unwrap()),
            ];
        });
        let read = Certificate::read(&der).unwrap();
        assert_eq!(read.name(CertificateName::SanDns), None);
        assert_eq!(read.name(CertificateName::SubjectCn), None);
        let spec = CertificateSpec {
            user: vec![CertificateName::SanDns],
            groups: Vec::new(),
            tenant: None,
        };
        assert!(read.identity(&spec).is_none());
    }

    #[test]
    fn version_and_end_are_read_whatever_the_names_are() {
        let der = certificate(|params| {
            // Too odd a name to be anybody's.
            params.distinguished_name.push(DnType::CommonName, "a\0b");
            params.not_after = rcgen::date_time_ymd(2031, 2, 28);
        });
        assert!(Certificate::read(&der).is_err());
        let outline = Outline::read(&der).unwrap();
        assert_eq!((outline.version, outline.not_after), (3, 1_930_003_200));
        assert_eq!(outline.last_day(), "2031-02-28");
        let first = include_bytes!("../config/tests/v1.pem");
        assert_eq!(Outline::of_pem(first).unwrap().version, 1);
    }

    #[test]
    fn bytes_cut_anywhere_are_no_certificate_and_never_a_panic() {
        let der = certificate(|params| {
            params.distinguished_name.push(DnType::CommonName, "ana");
        });
        for end in 0..der.len() {
            assert!(Certificate::read(&der[..end]).is_err());
        }
        for at in 0..der.len().min(200) {
            for bit in 0..8 {
                let mut changed = der.clone();
                changed[at] ^= 1 << bit;
                drop(Certificate::read(&changed));
            }
        }
    }

    #[test]
    fn days_are_counted_as_calendars_do() {
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2000, 2, 29), 11_016);
        assert_eq!(days(2026, 11, 21), 20_778);
    }
}
