//! Every profile of `testdata/field` is read as that folder's README says.

mod dumps;
mod folded;
mod go;
mod kit;
