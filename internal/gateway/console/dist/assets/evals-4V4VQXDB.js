/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-LBTY3XBY.js";import"./chunk-4WKM777Y.js";import"./chunk-EFAEV7HH.js";import"./chunk-OYKWIZ2M.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
