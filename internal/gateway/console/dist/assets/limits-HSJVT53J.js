/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-IAOAG6MJ.js";import"./chunk-K24UDU2N.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
