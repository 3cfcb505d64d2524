"""The spine: 200-byte messages from client sockets through three nodes to three forced logs and back.

The way of a write without a database: a bundle's body is forced before it is sent, and its place in the order before
it is answered; everybody else forces both together. All of it on the real driver, sealed, with failure handling in
place.
"""
