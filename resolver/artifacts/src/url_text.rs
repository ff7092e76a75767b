//! Pure. Shows the address of a file without the passwords and tokens in it.

use reqwest::Url;

/// The address without its user, and without its query and fragment, which may contain a token.
pub fn url_for_display(url: &str) -> String {
    let Ok(mut shown) = Url::parse(url) else { return "an invalid address".to_owned() };
    let is_cut = shown.query().is_some() || shown.fragment().is_some();
    // Both fail only for an address without a host, which has no user.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.set_fragment(None);
    if is_cut { format!("{shown}?…") } else { shown.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_address_has_no_user_and_no_token() {
        assert_eq!(url_for_display("https://user:pass@host/x.jar?token=abc#d"), "https://host/x.jar?…");
        assert_eq!(url_for_display("https://host/x.jar"), "https://host/x.jar");
        assert_eq!(url_for_display("//user:pass@host"), "an invalid address");
    }
}
