"""The node: the drivers that run a stack of cores on a real machine. A driver decides nothing.

`driver` carries out the router's orders on an event loop: `transport` has the datagrams, `sealing` encrypts and
authenticates each, `acquaintance` knows who is who, `log` keeps what must survive, `fitting` suits the Ring to a link.

Around it: `config` and `keyfile` read what an operator wrote, `bootstrap` and `invitation` make a cluster of machines,
`rotation` changes its key, `life` assembles a node and looks after it, `members` knows who came since, `faults` lets
disks of local clusters fail, `admin` tells the world, `service` runs it all.

Where clients come in: `front` opens the ports; `clients`, `connection` and `tls` are the wire's, `web` and `webserver`
HTTP's; `users` and `certificates` say who is who, `scrutiny` looks at what is asked, `attendant` and `logfeed` serve
it, and `desk` is where the engine is asked.
"""
