"""Fed-PLT: Bastianello, Liu, Johansson, both versions, table by table."""
