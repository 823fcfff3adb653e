//! What tests of pages share.

pub(crate) mod markup;
