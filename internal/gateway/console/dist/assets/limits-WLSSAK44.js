/* Licences of the libraries in this file: NOTICE.txt */
import{b as a,c as b,d as c}from"./chunk-MGY2ZYWM.js";import"./chunk-G2TCPSGF.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
