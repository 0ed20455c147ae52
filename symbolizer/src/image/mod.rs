//! ELF images and what in them can name an address.
