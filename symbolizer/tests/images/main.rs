//! Names for the addresses of real images, built here by the compilers of the machine, against other tools' answers.

mod debug_files;
mod go;
mod kit;
mod mutate;
mod mutations;
mod named_files;
mod native;
mod whole_profile;
