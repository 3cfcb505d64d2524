"""The noticeboard: an example protocol, small enough to read in one sitting, written as the real ones are.

Everybody pins notices to a board. After any partition, crash and restart everybody reads every notice: each
author's in the order in which they were written, none twice in one life, and nothing that somebody read is
forgotten. There is no agreement on one order between authors: that is what the real protocols are for.

How to read it: `messages`, then `core`, then the phases `alone`, `exchanging` and `level`. `board` is what all
phases know, `invariants` what holds between any two events.
"""
