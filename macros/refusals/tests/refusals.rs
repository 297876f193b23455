//! The code that the attributes refuse, and the messages. `TRYBUILD=overwrite cargo test -p tilewright-refusals` rewrites the
//! expected text; read it before committing it.

#[test]
fn refusals_point_at_the_users_token() {
    trybuild::TestCases::new().compile_fail("cases/*.rs");
}
