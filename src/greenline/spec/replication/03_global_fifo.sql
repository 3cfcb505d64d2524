-- In everybody's order a creator's bundles stand by their index, without gaps, from the first (notes I3).
SELECT run, process, position, bundle, 'it follows number ' || CAST(before AS STRING) || ' of ' || creator AS because
FROM (
    SELECT run, process, position, bundle, creator, bundle_index,
           coalesce(lag(bundle_index) OVER (PARTITION BY run, process, creator ORDER BY position, incarnation, local_index),
                    0) AS before
    FROM mark
    WHERE is_kept
) numbered
WHERE bundle_index <> before + 1
