"""The built-in profiles as TOML files; `bellmark profiles list` names them."""
