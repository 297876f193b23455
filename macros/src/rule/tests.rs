//! Expansions, as text.

use quote::quote;

use super::expand;

fn rule() -> proc_macro2::TokenStream {
    quote!(
        fn tile(s: &mut Schedule, block: BlockRv) -> RuleResult {
            s.unchanged()
        }
    )
}

#[test]
fn the_function_stays_and_is_registered() {
    let text = expand(quote!(target = "cpu", after = ["a", "b"], replace = "c"), rule()).to_string();
    assert!(text.starts_with(&rule().to_string()), "{text}");
    for part in [
        r#"name : "tile""#,
        r#"target : "cpu""#,
        r#"after : & ["a" , "b"]"#,
        "before : & []",
        r#"replace : :: tilewright :: __private :: Some ("c")"#,
        "apply : tile",
    ] {
        assert!(text.contains(part), "`{part}` is missing in {text}");
    }
}

#[test]
fn a_name_of_its_own_replaces_the_functions() {
    let text = expand(quote!(target = "gpu", name = "other"), rule()).to_string();
    assert!(text.contains(r#"name : "other""#), "{text}");
}
