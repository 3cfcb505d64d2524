"""The Ring: reliable, totally ordered multicast with Extended Virtual Synchrony (Amir 5.2).

A token goes round; who holds it says what it has to say, with numbers from the token. When the token is lost or
strangers are heard, the members of the next ring are agreed upon, the new ring recovers what the old configurations
lack, and everybody installs the next configuration.

How to read it: `messages`, then `core`, then the phases in the order of figure 5.2: `operational`, `gather`, `commit`,
`form`, `evs`. `ordering` is 5.2.1, `installation` is the heart of 5.2.3. `processor` is what all phases know.
"""
